// Runs a bundle as a page would, with only the globals that platforms share.
const { SMOKE_BASE_URL: baseUrl, SMOKE_API_KEY: apiKey } = process.env
globalThis.smokeService = { baseUrl, apiKey }
await import(new URL(process.argv[2], `file://${process.cwd()}/`).href)
console.log(JSON.stringify(await globalThis.smokeResult))
