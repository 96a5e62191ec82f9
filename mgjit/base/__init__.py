"""What everything stands on: settings, files, interruptions, garbage collection; it knows nothing of steps."""
