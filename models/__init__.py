"""Networks and mathematics, independent of Prefect, MLflow, LanceDB, S3 and environment variables."""
