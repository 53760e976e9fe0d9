// Uses only exports that need neither requests nor schemas: their bundle must not contain ky, zod
// or uuid.
import { formatAmount, isCustomerOrderingError, TimeoutError } from 'customer-ordering-sdk'

const amount = formatAmount({ amount: 1250, currency: 'EUR' }, 'en')
console.log(JSON.stringify([amount, TimeoutError.name, isCustomerOrderingError(new Error('another'))]))
