//! What a worker and a server say to each other: the worker port and its messages.
