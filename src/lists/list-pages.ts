import type { ListOptions, ListOrdersParams } from '../call-options.ts'
import type { CallSettings, Connection } from '../http/call.ts'
import { queryString } from '../http/path.ts'
import { READ_PAGE, read } from '../http/request.ts'
import type { Lifetime } from '../lifetime.ts'
import type { ListEnvelope } from '../schemas/list.ts'
import { callSettings, readArguments } from '../settings/arguments.ts'
import { envelopeOf, type ListEndpoint, parseRows, type Rows } from './envelope.ts'
import { Pages } from './pages.ts'

interface ListContext {
  readonly connection: Connection
  readonly lifetime: Lifetime
  readonly defaults: CallSettings
  readonly listEnvelope: ((body: unknown) => ListEnvelope) | undefined
}

export function listPages<T>(
  { connection, defaults, lifetime, listEnvelope }: ListContext,
  list: ListEndpoint<T>,
  { limit, offset = 0, sourceSystem }: ListOrdersParams,
  options: ListOptions | undefined,
): Pages<T> {
  const { prefetch, ...call } = readArguments.listCall(options)
  const settings = callSettings(defaults, call)
  return new Pages<T>(
    async (at) => {
      lifetime.check()
      const { value, info } = await read<Rows<T>>(connection, {
        ...READ_PAGE,
        endpoint: list.endpoint,
        path: list.path,
        query: queryString({ limit, offset: at.offset === 0 ? undefined : at.offset, sourceSystem }),
        settings: { ...settings, signal: at.signal },
        parse: (body) => {
          const found = envelopeOf(body, list.identifier, listEnvelope)
          return 'issues' in found ? found : parseRows(found.value, list)
        },
      })
      return { ...value, info }
    },
    { offset, limit, prefetch, signal: settings.signal },
  )
}
