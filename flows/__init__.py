"""Thin Prefect shells around the plain functions."""
