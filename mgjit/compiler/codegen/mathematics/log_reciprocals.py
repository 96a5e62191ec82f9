"""Where the C library's log cuts the line: 128 numbers near 1/z, one for each part of [0.6875, 1.375).

These are data, not the result of a rule: around the reciprocal of each middle its author searched for a number
such that it and its logarithm are unusually close to doubles.  From Arm's "optimized routines" (file
math/log_data.c, copyright 2018 Arm Limited, MIT licence); glibc, musl, newlib and bionic have the same.
"""

from __future__ import annotations

#: In units of 2^-52, from number 80 on of 2^-53.
_UNITS = (
    0x1734f0c3e0de9f, 0x1713786a2ce91f, 0x16f26008fab5a0, 0x16d1a61f138c7d, 0x16b1490bc5b4d1, 0x169147332f0cba,
    0x16719f18224223, 0x16524f99a51ed9, 0x163356aa8f24c4, 0x1614b36b9ddc14, 0x15f66452c65c4c, 0x15d867b5912c4f,
    0x15babccb5b90de, 0x159d61f2d91a78, 0x15805612465687, 0x156397cee76bd3, 0x154725e2a77f93, 0x152aff42064583,
    0x150f22dbb2bddf, 0x14f38f4734ded7, 0x14d843cfde2840, 0x14bd3ec078a3c8, 0x14a27fc3e0258a, 0x14880524d48434,
    0x146dce1b192d0b, 0x1453d9d3391854, 0x143a2744b4845a, 0x1420b54115f8fb, 0x140782da3ef4b1, 0x13ee8f5d57fe8f,
    0x13d5d9a00b4ce9, 0x13bd60c010c12b, 0x13a5242b75dab8, 0x138d22cd9fd002, 0x13755bc5847a1c, 0x135dce49ad36e2,
    0x134679984dd440, 0x132f5cceffcb24, 0x13187775a10d49, 0x1301c8373e3990, 0x12eb4ebb95f841, 0x12d50a0219a9d1,
    0x12bef9a8b7fd2a, 0x12a91c7a0c1bab, 0x1293726014b530, 0x127dfa5757a1f5, 0x1268b39b1d3bbf, 0x12539d838ff5bd,
    0x123eb7aac9083b, 0x122a012ba940b6, 0x12157996cc4132, 0x1201201dd2fc9b, 0x11ecf4494d480b, 0x11d8f5528f6569,
    0x11c52311577e7c, 0x11b17c74cb26e9, 0x119e010c2c1ab6, 0x118ab07bb670bd, 0x11778a25efbcb6, 0x11648d354c31da,
    0x1151b990275fdd, 0x113f0ea432d24c, 0x112c8b7210f9da, 0x111a3028ecb531, 0x1107fbda8434af, 0x10f5ee0f4e6bb3,
    0x10e4065d2a9fce, 0x10d244632ca521, 0x10c0a77ce2981a, 0x10af2f83c636d1, 0x109ddb98a01339, 0x108cabaf52e7df,
    0x107b9f2f4e28fb, 0x106ab58c358f19, 0x1059eea5ecf92c, 0x104949cdd12c90, 0x1038c6c6f0ada9, 0x102865137932a9,
    0x10182427ea7348, 0x1008040614b195, 0x1fe01ff726fa1a, 0x1fa11cc261ea74, 0x1f6310b081992e, 0x1f25f63ceeadcd,
    0x1ee9c8039113e7, 0x1eae8078cbb1ab, 0x1e741aa29d0c9b, 0x1e3a91830a99b5, 0x1e01e009609a56, 0x1dca01e577bb98,
    0x1d92f20b7c9103, 0x1d5cac66fb5cce, 0x1d272caa5ede9d, 0x1cf26e3e6b2ccd, 0x1cbe6da2a77902, 0x1c8b266d37086d,
    0x1c5894bd5d5804, 0x1c26b533bb9f8c, 0x1bf583eeece73f, 0x1bc4fd75db96c1, 0x1b951e0c864a28, 0x1b65e2c5ef3e2c,
    0x1b374867c9888b, 0x1b094b211d304a, 0x1adbe885f2ef7e, 0x1aaf1d31603da2, 0x1a82e63fd358a7, 0x1a5740ef09738b,
    0x1a2c2a90ab4b27, 0x1a01a01393f2d1, 0x19d79f24db3c1b, 0x19ae2505c7b190, 0x19852ef297ce2f, 0x195cbaeea44b75,
    0x1934c69de74838, 0x190d4f2f6752e6, 0x18e6528effd79d, 0x18bfce9fcc007c, 0x1899c0dabec30e, 0x187427aa2317fb,
    0x184f00acb39a08, 0x182a49e8653e55, 0x18060195f40260, 0x17e22563e0a329, 0x17beb377dcb5ad, 0x179baa679725c2,
    0x177907f2170657, 0x1756cadbd6130c,
)  # fmt: skip

RECIPROCALS = tuple(units / 2.0 ** (52 if number < 80 else 53) for number, units in enumerate(_UNITS))
