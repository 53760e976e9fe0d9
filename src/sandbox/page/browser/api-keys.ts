import type { SandboxApiKey } from '../../service/state.ts'
import { badge, code } from './cells.ts'
import { act } from './control.ts'
import { fieldOf } from './copy.ts'
import { element } from './elements.ts'
import { drawTable } from './table.ts'

const revealedSecrets = new Map<string, string>()
let latest: readonly SandboxApiKey[] = []

async function showOrHide(id: string): Promise<void> {
  if (!revealedSecrets.delete(id)) {
    const secret = await fieldOf(`/api-keys/${encodeURIComponent(id)}`, 'secret')
    if (typeof secret === 'string') revealedSecrets.set(id, secret)
  }
  drawApiKeys(latest)
}

export function drawApiKeys(apiKeys: readonly SandboxApiKey[]): void {
  latest = apiKeys
  drawTable('api-keys', {
    columns: ['Name', 'Key', 'Customer', 'Permissions', 'Source system'],
    items: apiKeys.map((apiKey) => ({ ...apiKey, shown: revealedSecrets.get(apiKey.id) })),
    total: apiKeys.length,
    keyOf: ({ id }) => id,
    cellsOf: ({ id, customerId, permissions, revoked, secret, shown, sourceSystem }) => {
      const what = shown === undefined ? 'Show' : 'Hide'
      const button = element('button', { type: 'button', 'aria-label': `${what} the API key ${id}` }, what)
      button.addEventListener('click', () => act(() => showOrHide(id)))
      const text = element('span', {}, code(shown ?? secret), ' ', button)
      if (revoked) text.append(' ', badge('bad', 'revoked'))
      return [code(id), text, code(customerId), permissions.join(', '), sourceSystem ?? '']
    },
  })
}
