/** Workers of Cloudflare's own runtime on this machine, with D1 and Durable Objects on its disk. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { OrderStore } from '../../../src/stores/store.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { during } from '../support/during.ts'
import { engine } from '../support/engines.ts'
import { type Place, type Reply, resultOf, type Task, workerStore } from './platform.ts'

export interface Miniflare {
  readonly ready: Promise<URL>
  dispatchFetch(url: string, init: object): Promise<Response>
  getWorker(name: string): Promise<{
    fetch(url: string, init: object): Promise<Response>
    scheduled(options: object): Promise<object>
  }>
  dispose(): Promise<void>
}

export function miniflare(options: object): Miniflare {
  const { Miniflare } = engine<{ Miniflare: new (options: object) => Miniflare }>('miniflare')
  return new Miniflare(options)
}

export interface WorkerdOptions {
  readonly folder: string
  readonly baseUrl?: string
  readonly apiKey?: string
  /** The port of the first worker. Default: any free port. */
  readonly port?: number
}

let script: Promise<string> | undefined

/** Bundles as wrangler does, with the package's source. */
export async function bundleWorker(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:workers'],
    tsconfig: fileURLToPath(new URL('../../../tsconfig.test.json', import.meta.url)),
    logLevel: 'error',
  })
  const text = outputFiles[0]?.text ?? ''
  if (/from ["']node:/.test(text)) throw new Error('the worker imports a module of Node')
  return text
}

/** Two workers, each with its own isolate, over the same database and the same objects. */
export class Workerd {
  readonly #miniflare: Miniflare

  static async start(options: WorkerdOptions): Promise<Workerd> {
    script ??= bundleWorker(fileURLToPath(new URL('worker.ts', import.meta.url)))
    const workerd = new Workerd(await script, options)
    await workerd.#miniflare.ready
    return workerd
  }

  private constructor(contents: string, { folder, baseUrl = '', apiKey = '', port = 0 }: WorkerdOptions) {
    const worker = (name: string, orders: object) => ({
      name,
      modules: [{ type: 'ESModule', path: 'worker.mjs', contents }],
      compatibilityDate: '2026-07-01',
      d1Databases: { DB: 'orders' },
      durableObjects: { ORDERS: { className: 'Orders', useSQLite: true, ...orders } },
      bindings: { BASE_URL: baseUrl, API_KEY: apiKey },
    })
    this.#miniflare = miniflare({
      cf: false,
      port,
      workers: [worker('one', {}), worker('two', { scriptName: 'one' })],
      d1Persist: join(folder, 'd1'),
      durableObjectsPersist: join(folder, 'objects'),
    })
  }

  /** The address of the first worker, for other processes. */
  get url(): Promise<URL> {
    return this.#miniflare.ready
  }

  /** Performs a task in one of the workers. */
  async perform(place: Place, task: Task, worker: 'one' | 'two' = 'one'): Promise<unknown> {
    const { fetch } = await this.#miniflare.getWorker(worker)
    const response = await fetch('http://worker.test/', {
      method: 'POST',
      body: JSON.stringify({ ...task, ...place }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(text)
    return resultOf(JSON.parse(text) as Reply)
  }

  open(place: Place, handle: string, worker: 'one' | 'two' = 'one'): OrderStore {
    return workerStore(handle, (task) => this.perform(place, task, worker))
  }

  async kill(): Promise<void> {
    await this.#miniflare.dispose()
  }
}

/** A workerd that runs during the tests of a `describe`. */
export const runningWorkerd = (): (() => Workerd) => {
  const folder = temporaryFolder('workerd')
  return during(
    () => Workerd.start({ folder }),
    (workerd) => workerd.kill(),
  )
}
