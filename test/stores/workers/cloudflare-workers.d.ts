/** The part of the platform's module that the test worker uses. */
declare module 'cloudflare:workers' {
  export abstract class DurableObject<Env> {
    protected readonly ctx: { readonly storage: import('./platform.ts').Storage; abort(reason: string): void }
    protected readonly env: Env
    constructor(ctx: unknown, env: Env)
  }
}
