import { Converter, ReflectionKind } from 'typedoc'

/** The names by which entry points are imported, of the files that TypeDoc reads. */
const NAMES = {
  index: 'customer-ordering-sdk',
  'undici/index': 'undici',
  'proxy/index': 'proxy',
  'opentelemetry/index': 'opentelemetry',
  'sandbox/index': 'sandbox',
  'sandbox/http/server': 'sandbox/server',
  'sandbox/http/msw': 'msw',
}

/** @param {import('typedoc').Application} app */
export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module))
      module.name = NAMES[module.name] ?? module.name
  })
}
