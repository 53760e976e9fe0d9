/** Response header in which `customer-ordering-sdk/proxy` identifies the API key that it adds. */
export const API_KEY_TAG = 'api-key-tag'

/** Request header: the proxy sends the order only if the API key that it adds has this tag. */
export const IF_API_KEY_TAG = 'if-api-key-tag'
