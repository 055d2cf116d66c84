"""The one door: the only code that draws publishable noise and has files put under `released/`."""
