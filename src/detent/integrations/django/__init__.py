"""Detent as a Django application: put `detent.integrations.django` into INSTALLED_APPS.

`backend.DetentBackend` runs the tasks of Django, `application.app` is the Detent application, `application.client()`
enqueues in the transaction of Django, and `asgi.with_console` serves the console beside the project.
"""

try:
    import django as _django  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError(
        "detent.integrations.django needs Django, which is not installed. Run `pip install 'detent[django]'`."
    ) from error
