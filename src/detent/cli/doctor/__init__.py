"""The checks of `detent doctor`: what each looks at, and what it tells a person to do."""
