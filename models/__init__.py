"""HOW: networks and mathematics. Knows nothing of Prefect, MLflow, LanceDB, S3 or environment variables."""
