"""The pages: one module per noun. A view asks for the right, makes one call, and renders."""
