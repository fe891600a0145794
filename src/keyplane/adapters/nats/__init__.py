"""The bus on NATS: clients for agents and the controller, and an embedded server."""
