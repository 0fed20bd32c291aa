"""The pages, a folder for each noun. A view requires a permission, makes one call, and renders."""
