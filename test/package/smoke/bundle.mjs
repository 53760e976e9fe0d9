// The entry that each bundler builds into one file. The program that runs this file passes the
// service's address and reads the result.
import * as sdk from 'customer-ordering-sdk'
import { smoke } from './smoke.mjs'

globalThis.smokeResult = smoke(sdk, globalThis.smokeService)
