"""The engine of an application, its clients, and the handles of jobs and operations, sync and async."""
