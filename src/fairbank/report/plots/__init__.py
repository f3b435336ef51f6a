"""Figures as SVG and PNG files. `figures` describes them, `canvas` draws them with matplotlib.

matplotlib is an extra (`plots`), imported only while a figure is drawn.
"""
