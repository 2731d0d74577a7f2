"""Where functions run: on the event loop, on threads, or in processes of their own."""
