import { Console } from 'node:console'
import { Writable } from 'node:stream'
import type { ClientOptions } from 'customer-ordering-sdk'
import { expect, it } from 'vitest'
import { failure, Lab, order } from '../support/lab.ts'

/** The lines that a logger wrote. */
class Lines extends Writable {
  readonly lines: string[] = []
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.lines.push(...String(chunk).split('\n').filter(Boolean))
    done()
  }
}

type Given = NonNullable<ClientOptions['logger']>

/** Each logger, created as in its own documentation, writing to a stream. */
const LOGGERS: Readonly<Record<string, (out: Lines) => Promise<Given>>> = {
  pino: pinoTo,
  'a child of pino': async (out) => (await pinoTo(out)).child({ module: 'orders' }),
  winston: async (out) => {
    const { createLogger, format, transports } = await load('winston')
    return createLogger({
      level: 'debug',
      format: format.json(),
      transports: [new transports.Stream({ stream: out })],
    })
  },
  consola: async (out) => {
    const { createConsola } = await load('consola')
    const log = ({ args }: { args: unknown[] }): void => void out.write(JSON.stringify(args))
    return createConsola({ level: 5, reporters: [{ log }] })
  },
  console: async (out) => new Console(out, out),
}

// Import by a computed name, because this tests the packages and not their types.
async function load(name: string) {
  return await import(name)
}

async function pinoTo(out: Lines) {
  return (await load('pino')).pino({ level: 'debug' }, out)
}

it.each(Object.entries(LOGGERS))('%s as the logger writes the message and every field', async (_, make) => {
  const out = new Lines()
  const fetch = () => Promise.reject(new TypeError('down'))
  const client = new Lab().client({ fetch, maxRetries: 0, logger: await make(out), logLevel: 'debug' })
  expect(await failure(client.orders.create(order('invoice-4711')))).toMatchObject({ charged: 'unknown' })
  const written = out.lines.join('\n')
  for (const part of ['customer-ordering-sdk: call failed', 'orders.create', 'invoice-4711', 'unknown'])
    expect(written).toContain(part)
})
