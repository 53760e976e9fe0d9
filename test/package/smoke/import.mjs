// Runs the smoke suite with the package's modules, and prints the steps that passed.
import * as sdk from 'customer-ordering-sdk'
import { smoke } from './smoke.mjs'

const { SMOKE_BASE_URL: baseUrl, SMOKE_API_KEY: apiKey } = process.env
console.log(JSON.stringify(await smoke(sdk, { baseUrl, apiKey })))
