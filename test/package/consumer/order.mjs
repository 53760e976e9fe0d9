/** An order that costs 500. */
export const order = (externalOrderId) => ({
  serviceId: 'svc_standard',
  target: '@ada',
  quantity: 2,
  metadata: { externalOrderId },
})
