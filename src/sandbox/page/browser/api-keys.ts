import type { SandboxApiKey } from '../../service/state.ts'
import { badge, code } from './cells.ts'
import { act } from './control.ts'
import { fieldOf } from './copy.ts'
import { draw, element } from './elements.ts'
import { drawTable, type Row } from './table.ts'

/** API keys that the user has revealed. */
const shownKeys = new Map<string, string>()
/** The last received keys, to draw them again when one is shown or hidden. */
let known: readonly SandboxApiKey[] = []

async function showKey({ id }: SandboxApiKey): Promise<void> {
  if (!shownKeys.delete(id)) {
    const secret = await fieldOf(`/api-keys/${encodeURIComponent(id)}`, 'secret')
    if (typeof secret === 'string') shownKeys.set(id, secret)
  }
  drawApiKeys(known)
  document.getElementById(`show-${id}`)?.focus()
}

export function drawApiKeys(apiKeys: readonly SandboxApiKey[]): void {
  known = apiKeys
  draw('api-keys', [apiKeys, [...shownKeys]], () => {
    const rows = apiKeys.map((apiKey): Row => {
      const { id, customerId, permissions, revoked, sourceSystem } = apiKey
      const shown = shownKeys.get(id)
      const button = element(
        'button',
        { type: 'button', id: `show-${id}` },
        shown === undefined ? 'Show' : 'Hide',
      )
      button.setAttribute('aria-label', `${shown === undefined ? 'Show' : 'Hide'} the API key ${id}`)
      button.addEventListener('click', () => act(() => showKey(apiKey)))
      const text = element('span', {}, code(shown ?? apiKey.secret), ' ', button)
      if (revoked) text.append(' ', badge('bad', 'revoked'))
      return [code(id), text, code(customerId), permissions.join(', '), sourceSystem ?? '']
    })
    drawTable('api-keys', ['Name', 'Key', 'Customer', 'Permissions', 'Source system'], rows, rows.length)
  })
}
