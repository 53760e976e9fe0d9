import { act, call } from './control.ts'
import { element } from './elements.ts'

export function copyOnClick(button: HTMLElement, make: () => Promise<string>): void {
  const name = button.textContent
  button.addEventListener('click', () =>
    act(async () => {
      await navigator.clipboard.writeText(await make())
      button.textContent = 'Copied'
      setTimeout(() => {
        button.textContent = name
      }, 1500)
    }),
  )
}

export function copyButton(name: string, make: () => Promise<string>): HTMLElement {
  const button = element('button', { type: 'button', class: 'copy' }, name)
  copyOnClick(button, make)
  return button
}

export async function fieldOf(path: string, name: string): Promise<unknown> {
  const answer = await call('GET', path)
  return typeof answer === 'object' && answer !== null ? Reflect.get(answer, name) : undefined
}
