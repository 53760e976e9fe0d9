import { install } from '../../../tools/programs/install.ts'

export default (): void => install('test/engines')
