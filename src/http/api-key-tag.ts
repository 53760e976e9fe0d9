/** Response header in which `customer-ordering-sdk/proxy` names the API key that it adds. */
export const API_KEY_TAG = 'api-key-tag'

/** Request header by which the client asks that proxy to send an order with the API key of this tag, or not at all. */
export const IF_API_KEY_TAG = 'if-api-key-tag'
