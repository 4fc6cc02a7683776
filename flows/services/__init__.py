"""Services: deployments, the server stack, web pages, the served experience model, maintenance."""
