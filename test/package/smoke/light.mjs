// What needs neither requests nor schemas: a bundle of it has to do without ky, zod and uuid.
import { formatAmount, isCustomerOrderingError, TimeoutError } from 'customer-ordering-sdk'

const amount = formatAmount({ amount: 1250, currency: 'EUR' }, 'en')
console.log(JSON.stringify([amount, TimeoutError.name, isCustomerOrderingError(new Error('another'))]))
