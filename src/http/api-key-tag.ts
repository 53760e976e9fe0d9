/** Response header in which `customer-ordering-sdk/proxy` names the API key that it adds. */
export const API_KEY_TAG = 'api-key-tag'

/**
 * Request header that makes this proxy send an order under the API key with this tag, or not at
 * all.
 */
export const IF_API_KEY_TAG = 'if-api-key-tag'
