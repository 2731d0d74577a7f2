"""Workers that stand still for longer than their lease at a chosen moment, while another worker takes over."""
