import json, pytest
from .test_sm_page import put, address, ORDER
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_shots(as_, engine, prefix, theme, width):
    key = put(engine, "shop/order:17", ORDER)
    page = as_("supervisor", viewport={"width": width, "height": 844}, color_scheme=theme)
    for name, where in (("key", address(key)), ("find", "/sm/"), ("over", "/")):
        page.goto(where)
        if name == "key": page.get_by_text("Repairs").click()
        page.screenshot(path=f"/tmp/sm/{name}-{theme}-{width}.png", full_page=True)
    if width == 1400:
        page.goto(address(key))
        from machines.engine.compat import call
        call(engine.client, "SM.MUTATE", key, "refunded", "elsewhere")
        page.get_by_role("button", name="Go to picking").click()
        page.screenshot(path=f"/tmp/sm/conflict-{theme}.png", full_page=True)
    engine.client.delete(key)
