window.shop = "external";
