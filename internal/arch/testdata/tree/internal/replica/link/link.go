package link

import _ "holdfast/internal/replica"
