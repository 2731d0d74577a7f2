"""The record in one SQLite file: a verb is a short script under BEGIN IMMEDIATE."""
