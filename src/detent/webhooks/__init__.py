"""Webhooks: deliveries from other systems that become jobs, and events that are delivered to other systems."""
