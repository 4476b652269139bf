"""The pure part of ``observe``."""
