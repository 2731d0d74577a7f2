"""Entities: tables of the user under a lifecycle, and the record of every change."""
