// The same with the package's CommonJS files.
const sdk = require('customer-ordering-sdk')

const { SMOKE_BASE_URL: baseUrl, SMOKE_API_KEY: apiKey } = process.env
import('./smoke.mjs')
  .then(({ smoke }) => smoke(sdk, { baseUrl, apiKey }))
  .then((done) => console.log(JSON.stringify(done)))
