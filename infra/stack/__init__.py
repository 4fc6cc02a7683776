"""Server stack on one machine, as processes: PostgreSQL, S3-compatible objects, Prefect, MLflow, a worker."""
