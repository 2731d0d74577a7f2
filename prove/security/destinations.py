"""Places where no outgoing webhook may go."""

from __future__ import annotations

__all__ = ["BLOCKED", "URLS"]

BLOCKED = {
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "100.127.255.255", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1"),
    *("203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.88.99.1"),
    *("::1", "::", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1"),
    *("64:ff9b:1::1", "fe80::1", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1", "2001::1", "2001:db8::1"),
    *("2002:7f00:1::", "2002:808:808::1", "100::1", "4000::1", "3fff::1", "5f00::1"),
}
"""Addresses that are not public."""
URLS: tuple[str, ...] = (
    *("http://2130706433/", "https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://127.1/"),
    *("https://0177.0.0.1/", "https://127.0.0.01/", "https://127.0.0.1/", "https://0/", "https://0.0.0.0/"),
    *(
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fe80::1%25eth0]/",
        "https://[::]/",
        "https://[x]/",
    ),
    *("https://user@erp.example/", "https://erp.example:443@127.0.0.1/", "https://erp.example\\@127.0.0.1/"),
    *("https://erp.example /", "https://erp.example/\r\nHost: x", "https://１２７.0.0.1/", "https://ⓛocalhost/"),
    *("file:///etc/passwd", "gopher://127.0.0.1:6379/", "ftp://erp.example/", "//erp.example/", "", "erp.example"),
    *(
        "https:///hook",
        "https://",
        "https://erp.example:0/",
        "https://erp.example:99999/",
        "https://erp.example:x/",
    ),
    *("http://erp.example/", "https://erp.example:22/", "https://erp.example:6379/", "https://.example/"),
    *("https://10.0.0.1/", "https://169.254.169.254/latest/meta-data/", "https://[64:ff9b::7f00:1]/"),
    "https://erp.example/" + "x" * 3000,
)
"""URLs that hide their host, or have a scheme or a port that is not allowed."""
