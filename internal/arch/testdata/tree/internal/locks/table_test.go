package locks_test

import (
	_ "holdfast/internal/node"
)

import _ "holdfast/internal/locks"
