// A worker whose every response is the result of the smoke suite.
import * as sdk from 'customer-ordering-sdk'
import { smoke } from './smoke.mjs'

export default {
  async fetch(_request, env) {
    const service = { baseUrl: env.SMOKE_BASE_URL, apiKey: env.SMOKE_API_KEY }
    try {
      return Response.json(await smoke(sdk, service))
    } catch (error) {
      return new Response(String(error?.stack ?? error), { status: 500 })
    }
  },
}
