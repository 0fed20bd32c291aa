"""What others notice while one person does as much as they can: four attacks on the web process, and how long the site
takes to answer meanwhile."""
