-- Your own table. Each row is one order.
CREATE TABLE purchases (
  id text PRIMARY KEY,                      -- the reference of the order: never use an id again
  service_id text NOT NULL,
  target text NOT NULL,
  quantity integer NOT NULL,
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'ordered', 'refused', 'doubt')),
  order_id text,
  reason text,
  tried_at timestamptz
);
CREATE INDEX ON purchases (tried_at NULLS FIRST) WHERE state IN ('waiting', 'doubt');
