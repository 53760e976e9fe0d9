// What each bundler makes one file of. Whoever runs that file says where the service is and takes the result.
import * as sdk from 'customer-ordering-sdk'
import { smoke } from './smoke.mjs'

globalThis.smokeResult = smoke(sdk, globalThis.smokeService)
