/** Both checks in one file, so that they can be bundled with a seeded bug in the source. */
export { checkInterleavings } from './interleavings.ts'
export { checkModel } from './orders-model.ts'
