import { pageDocument } from './document.ts'
import { pageScript } from './script.ts'
import { pageStyle } from './style.ts'

export interface PageFile {
  readonly contentType: string
  text(): string
}

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
  <rect width="32" height="32" rx="7" fill="#0b6e5f"/>
  <path d="M9 10h14l-2 9H11z M12 24h.1M20 24h.1" fill="none" stroke="#fff" stroke-width="3"
    stroke-linejoin="round" stroke-linecap="round"/>
</svg>
`

export const pageFiles: ReadonlyMap<string, PageFile> = new Map<string, PageFile>([
  ['/', { contentType: 'text/html; charset=utf-8', text: () => pageDocument }],
  ['/__sandbox/page.css', { contentType: 'text/css; charset=utf-8', text: () => pageStyle }],
  ['/__sandbox/page.js', { contentType: 'text/javascript; charset=utf-8', text: pageScript }],
  ['/__sandbox/icon.svg', { contentType: 'image/svg+xml', text: () => icon }],
])
