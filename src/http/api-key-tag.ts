/** Response header with which `customer-ordering-sdk/proxy` identifies the API key that it adds. */
export const API_KEY_TAG = 'api-key-tag'

/** Request header that makes the proxy send an order only with the API key that has this tag. */
export const IF_API_KEY_TAG = 'if-api-key-tag'
